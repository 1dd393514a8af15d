#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "argosy/base/call.h"

namespace argosy {

/// Completions of a command line: its flags and subcommands.
inline std::vector<std::string> completions(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::Option* option : app.get_options({}))
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  for (const CLI::App* sub : app.get_subcommands({})) words.push_back(sub->get_name());
  return words;
}

/// Explains a command line that was not understood: its first unknown flag or subcommand, with the
/// nearest known one; "" if every word is known.
inline std::string unknown_word(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* at = &app;
  for (const std::string& word : words) {
    const bool flag = word.starts_with("--");
    const std::string name = flag ? word.substr(0, word.find('=')) : word;
    const std::vector<std::string> known = completions(*at);
    if (word.starts_with('-') != flag || (!flag && at->get_subcommands({}).empty())) continue;
    if (std::ranges::find(known, name) == known.end()) {
      const std::string near = nearest(name, known);
      return fmt::format("unknown {} {}{}", flag ? "flag" : "command", name,
                         near.empty() ? "" : ", did you mean " + near + "?");
    }
    if (!flag) at = at->get_subcommand(name);
  }
  return "";
}

/// A script that completes a program's words and its subcommands' in a shell (bash or zsh), and
/// files after them. `program` is its name. Throws CLI::ValidationError for another shell.
inline std::string completion_script(const CLI::App& app, const std::string& program,
                                     const std::string& shell) {
  if (shell != "bash" && shell != "zsh")
    throw CLI::ValidationError("--completion", "no shell '" + shell + "', expected bash or zsh");
  std::string cases;
  for (const CLI::App* sub : app.get_subcommands({}))
    cases += fmt::format("      {}) words=\"{}\" ;;\n", sub->get_name(),
                         fmt::join(completions(*sub), " "));
  const std::string function = fmt::format(R"(_{0}() {{
  local words="{1}" current="${{COMP_WORDS[COMP_CWORD]}}" word
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$word" in
{2}      -*) ;;
    esac
  done
  COMPREPLY=($(compgen -W "$words" -- "$current") $(compgen -f -- "$current"))
}}
complete -o filenames -F _{0} {0}
)",
                                           program, fmt::join(completions(app), " "), cases);
  return shell == "bash" ? function : "autoload -U +X bashcompinit && bashcompinit\n" + function;
}

}  // namespace argosy
