#include "traces/least_squares.hpp"

#include <cmath>
#include <cstddef>
#include <utility>

namespace nebula {
namespace {

using Matrix = std::vector<std::vector<double>>;

/// How much a factor's relative distance from the common ratio weighs against a sum's relative
/// error: a part of a fifth of its sum that must double leaves an error of 0.05 %, and 1 % of
/// noise moves even a part of 1 % of its sum by less than half.
constexpr double shrinkage = 1e-4;

/// Gauss-Jordan with the largest pivot; the matrix is positive definite and tiny.
std::vector<double> solve(Matrix a, std::vector<double> b) {
  const std::size_t n = b.size();
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t pivot = i;
    for (std::size_t r = i + 1; r < n; ++r)
      if (std::abs(a[r][i]) > std::abs(a[pivot][i])) pivot = r;
    std::swap(a[i], a[pivot]);
    std::swap(b[i], b[pivot]);
    for (std::size_t r = 0; r < n; ++r) {
      if (r == i) continue;
      const double factor = a[r][i] / a[i][i];
      for (std::size_t c = i; c < n; ++c) a[r][c] -= factor * a[i][c];
      b[r] -= factor * b[i];
    }
  }
  for (std::size_t i = 0; i < n; ++i) b[i] /= a[i][i];
  return b;
}

/// Corrections d to factors of 1, those not held: minimises the sum over s of
/// (parts[s] . (1 + d) - 1)^2 plus shrinkage |d|^2.
std::vector<double> corrections(const Matrix& parts, const std::vector<double>& held,
                                const std::vector<bool>& is_held) {
  const std::size_t n = held.size();
  Matrix normal(n, std::vector<double>(n, 0.0));
  std::vector<double> right(n, 0.0);
  for (const auto& row : parts) {
    double missing = 1;
    for (std::size_t k = 0; k < n; ++k) missing -= row[k] * (is_held[k] ? 1 + held[k] : 1.0);
    for (std::size_t k = 0; k < n; ++k) {
      right[k] += row[k] * missing;
      for (std::size_t l = 0; l < n; ++l) normal[k][l] += row[k] * row[l];
    }
  }
  for (std::size_t k = 0; k < n; ++k) normal[k][k] += shrinkage;
  for (std::size_t k = 0; k < n; ++k) {
    if (!is_held[k]) continue;
    for (std::size_t l = 0; l < n; ++l) normal[k][l] = normal[l][k] = 0;
    normal[k][k] = 1;
    right[k] = held[k];
  }
  return solve(std::move(normal), std::move(right));
}

}  // namespace

std::vector<double> shrunk_factors(const Matrix& parts, const std::vector<double>& measured) {
  double all_parts = 0;
  double all_measured = 0;
  for (std::size_t s = 0; s < parts.size(); ++s) {
    if (measured[s] <= 0) return {};
    all_measured += measured[s];
    for (const double part : parts[s]) all_parts += part;
  }
  if (all_parts <= 0 || all_measured <= 0) return {};
  const double ratio = all_measured / all_parts;

  Matrix relative = parts;
  for (std::size_t s = 0; s < parts.size(); ++s)
    for (double& part : relative[s]) part *= ratio / measured[s];

  constexpr double least = -0.9;
  const std::size_t n = parts.front().size();
  std::vector<double> held(n, least);
  std::vector<bool> is_held(n, false);
  std::vector<double> found;
  // Whatever falls through the floor is held there and the rest solved again; at most n rounds.
  for (bool again = true; again;) {
    again = false;
    found = corrections(relative, held, is_held);
    for (std::size_t k = 0; k < n; ++k)
      if (!is_held[k] && found[k] < least) again = is_held[k] = true;
  }
  for (double& factor : found) factor = ratio * (1 + factor);
  return found;
}

}  // namespace nebula
