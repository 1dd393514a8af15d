# Checks of the source tree itself, as tests.
find_package(Python3 REQUIRED COMPONENTS Interpreter)

add_test(NAME dev.layers COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/dev/check_layers.py)
add_test(NAME dev.layers_self_test COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/dev/check_layers.py --self-test)
add_test(NAME dev.python_layers COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/dev/check_python_layers.py)
add_test(NAME dev.python_layers_self_test COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/dev/check_python_layers.py --self-test)
add_test(NAME dev.text COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/dev/check_text.py)
