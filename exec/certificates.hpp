#pragma once

#include <string>
#include <vector>

namespace nebula {

/// Makes a run's authority and a certificate with private key for each cloud, valid for a year,
/// and since yesterday already (clouds' clocks differ).
///
/// The folder then holds authority.pem, authority.key, and NAME.pem and NAME.key of each cloud;
/// keys are readable by their owner alone. A cloud needs authority.pem and its own two files;
/// authority.key is only for making certificates and belongs on no cloud.
///
/// Never overwrites: throws InputError when one of the files exists or a name can't be a file
/// name, RunError when writing fails, and then leaves nothing behind.
void make_keys(const std::string& folder, const std::vector<std::string>& cloud_names);

/// Files that the cloud's process needs.
struct KeyFiles {
  std::string authority;
  std::string certificate;
  std::string key;
};
KeyFiles key_files(const std::string& folder, const std::string& cloud);

/// A name for the run that all its clouds agree on: 16 hex digits of the SHA-256 of authority.pem.
/// Empty when the folder has none, as for a run of one stage.
std::string run_name(const std::string& folder);

}  // namespace nebula
