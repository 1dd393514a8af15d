# Files of a folder are compiled together, up to eight at a time: what they all instantiate, the compiler makes once.
# docs/decisions/0018-build-time.md has the figures. Private names of such files must differ; those that repeat
# one, tests among them, are compiled apart. So are the plug-ins that people add, whose files need not know each other,
# the layers whose loops are measured file by file, and what docs/ten-minutes.md follows: a test puts traced files in
# its place.
option(ARGOSY_UNITY "Compile the files of a folder together" ON)
set(argosy_apart
  comm/links.cc comm/peers.cc comm/rendezvous.cc comm/shared_backend.cc comm/shared_memory.cc
  comm/backends/module.cc comm/backends/tcp.cc
  config/expression.cc config/model_setup.cc config/network.cc config/network_layers.cc
  launch/job.cc launch/meeting.cc
  ps/schedule.cc ps/server.cc
  data/batcher.cc data/file_lane.cc graph/executor.cc modes/remote.cc ps/client.cc ps/exchange_job.cc
  ps/row_recipe.cc ps/shard.cc ps/step_group.cc train/trainer.cc
  config/config_test.cc config/network_test.cc config/proof_test.cc job/transpiler_test.cc launch/job_test.cc
  launch/ports_test.cc modes/stepper_test.cc net/simulation_test.cc plan/role_test.cc ps/rule_test.cc
  ps/schedule_test.cc ps/server_test.cc train/metric_tally_test.cc train/sharded_test.cc train/sparse_trainer_test.cc)

function(argosy_unity target)
  if(NOT ARGOSY_UNITY)
    return()
  endif()
  list(TRANSFORM argosy_apart PREPEND ${CMAKE_SOURCE_DIR}/argosy/)
  set(left ${ARGN})
  list(REMOVE_ITEM left ${argosy_apart})
  if(NOT target MATCHES "_test$")
    list(FILTER left EXCLUDE REGEX "/argosy/(base|tensor|device|ops|ps/rules|ps/tables|modes/communicators|data/parsers)/")
  endif()
  while(left)
    list(GET left 0 first)
    cmake_path(GET first PARENT_PATH folder)
    set(files ${left})
    list(FILTER files INCLUDE REGEX "^${folder}/[^/]*$")
    list(REMOVE_ITEM left ${files})
    _argosy_unity_folder(${folder} ${files})
  endwhile()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # The files are main files all the same, whose types of an unnamed namespace nobody else sees.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# As few groups as there have to be, of about one size.
function(_argosy_unity_folder folder)
  list(LENGTH ARGN count)
  cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${CMAKE_SOURCE_DIR}/argosy OUTPUT_VARIABLE name)
  string(REPLACE "/" "_" name ${name})
  math(EXPR groups "(${count} + 7) / 8")
  set(index 0)
  foreach(file IN LISTS ARGN)
    math(EXPR group "${index} * ${groups} / ${count}")
    set_source_files_properties(${file} PROPERTIES UNITY_GROUP ${name}_${group})
    math(EXPR index "${index} + 1")
  endforeach()
endfunction()
