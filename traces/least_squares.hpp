#pragma once

#include <vector>

namespace nebula {

/// Factors x for the parts of several sums, so that sum over k of parts[s][k] x[k] comes close to
/// measured[s], relative to it, for every s.
///
/// Fewer sums than parts is the rule (two stages, three kinds of layer): what the sums leave open
/// stays at the common ratio of all measured to all parts. No factor falls below a tenth of that
/// ratio. Empty when the parts are all zero or nothing positive was measured.
std::vector<double> shrunk_factors(const std::vector<std::vector<double>>& parts,
                                   const std::vector<double>& measured);

}  // namespace nebula
