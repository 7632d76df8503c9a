#pragma once

#include <string>

#include "core/fields.hpp"
#include "planner/search.hpp"

namespace nebula {

/// The best plans as an aligned table, a line each.
std::string table(const SearchResult& result);

/// The same and the search's figures as one JSON object.
Node to_node(const SearchResult& result);

}  // namespace nebula
