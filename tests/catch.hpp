#pragma once

// Catch2 2 and 3 under one include.
#ifdef NEBULA_CATCH3
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
