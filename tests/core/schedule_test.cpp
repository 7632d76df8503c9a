#include "core/schedule.hpp"

#include <random>

#include "core/error.hpp"
#include "core/schedules.hpp"
#include "tests/catch.hpp"

using namespace nebula;

namespace {

std::string text(const std::vector<Op>& ops) {
  std::string result;
  for (const Op& op : ops) result += (result.empty() ? "" : " ") + to_string(op);
  return result;
}

}  // namespace

TEST_CASE("1F1B and GPipe are the lists of the literature") {
  const Shape shape{3, 4};
  const OpLists plain = make_schedule(one_f_one_b(shape), shape);
  CHECK(text(plain[0]) == "F0 F1 F2 B0 F3 B1 B2 B3 sum_norm update");
  CHECK(text(plain[1]) == "F0 F1 B0 F2 B1 F3 B2 B3 sum_norm share_norm update");
  CHECK(text(plain[2]) == "F0 B0 F1 B1 F2 B2 F3 B3 sum_norm share_norm update");
  const OpLists all = make_schedule(gpipe(), shape);
  CHECK(text(all[1]) == "F0 F1 F2 F3 B0 B1 B2 B3 sum_norm share_norm update");
}

TEST_CASE("a tied model hands its shared gradient over at both ends") {
  const Shape shape{3, 1, 1, true};
  const OpLists lists = make_schedule(gpipe(), shape);
  CHECK(text(lists[0]) == "F0 B0 tie_send tie_receive sum_norm update");
  CHECK(text(lists[1]) == "F0 B0 sum_norm share_norm update");
  CHECK(text(lists[2]) == "F0 B0 tie_send sum_norm tie_receive share_norm update");
}

TEST_CASE("every schedule of random shape runs to its end within its depth") {
  std::mt19937_64 random(7);
  for (int i = 0; i < 500; ++i) {
    const Shape shape{1 + int(random() % 6), 1 + int(random() % 12), 1, random() % 2 == 0};
    const int extra = int(random() % 4);
    const ScheduleSettings settings = random() % 3 == 0 ? gpipe() : one_f_one_b(shape, extra);
    const OpLists lists = make_schedule(settings, shape);
    CAPTURE(shape.stages, shape.micro_batches, extra);
    CHECK_NOTHROW(check(shape, lists));
    for (int s = 0; s < shape.stages; ++s) {
      const int depth = settings.kind == ScheduleKind::gpipe ? shape.micro_batches
                                                             : settings.in_flight[std::size_t(s)];
      CHECK(peak_in_flight(lists[std::size_t(s)]) == depth);
      CHECK(in_flight(settings, shape, s) == depth);
    }
    CHECK_NOTHROW(check(shape, forward_only(shape)));
  }
}

TEST_CASE("check names what can never run") {
  const Shape shape{2, 2};
  OpLists lists = make_schedule(one_f_one_b(shape), shape);
  const auto complaint = [&] {
    try {
      check(shape, lists);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  SECTION("a deadlock") {
    // Stage 0 wants the gradient of micro-batch 1 before it has sent its activation.
    std::swap(lists[0][1], lists[0][3]);
    CHECK(complaint().find("before its forward") != std::string::npos);
  }
  SECTION("stages that wait for each other") {
    lists[1] = {{OpKind::forward, 0},  {OpKind::forward, 1}, {OpKind::backward, 1},
                {OpKind::backward, 0}, {OpKind::sum_norm},   {OpKind::share_norm},
                {OpKind::update}};
    lists[0] = {{OpKind::forward, 0},  {OpKind::backward, 0}, {OpKind::forward, 1},
                {OpKind::backward, 1}, {OpKind::sum_norm},    {OpKind::update}};
    CHECK(complaint().find("stage 0, position 1, op B0: can never run") != std::string::npos);
  }
  SECTION("an op twice") {
    lists[0].insert(lists[0].begin(), {OpKind::forward, 1});
    CHECK(complaint().find("stands twice") != std::string::npos);
  }
  SECTION("an op missing") {
    lists[1].erase(lists[1].begin());
    CHECK(!complaint().empty());
  }
  SECTION("a micro-batch that does not exist") {
    lists[0][0].micro_batch = 2;
    CHECK(complaint().find("there are 2 micro-batches") != std::string::npos);
  }
  SECTION("a list missing") {
    lists.pop_back();
    CHECK(complaint().find("1 op lists for 2 stages") != std::string::npos);
  }
}

TEST_CASE("depths that grow from stage to stage are refused") {
  const Shape shape{2, 4};
  CHECK_THROWS_AS(make_schedule({ScheduleKind::one_f_one_b, {1, 2}}, shape), InputError);
  CHECK_THROWS_AS(make_schedule({ScheduleKind::one_f_one_b, {0, 0}}, shape), InputError);
  CHECK_THROWS_AS(make_schedule({ScheduleKind::one_f_one_b, {2}}, shape), InputError);
  CHECK_THROWS_AS(make_schedule({ScheduleKind::gpipe, {2, 1}}, shape), InputError);
}

TEST_CASE("interleaved parts are joined in order of the forward") {
  const Shape shape{2, 1, 2};
  // Part 2 is chunk 1 of stage 0: its input comes back from stage 1.
  const auto in = needs(shape, 0, {OpKind::forward, 0, 1});
  REQUIRE(in.size() == 1);
  CHECK(in[0] == Message{MessageKind::activation, 1, 0, 0, 1});
  CHECK(emits(shape, 1, {OpKind::forward, 0, 0}) == in);
  CHECK(emits(shape, 1, {OpKind::forward, 0, 1}).empty());
  CHECK(needs(shape, 1, {OpKind::backward, 0, 1}).empty());
}
