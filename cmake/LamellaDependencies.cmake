# Finds what the build needs; tools/setup installs all of it.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(ZLIB REQUIRED)
find_package(LLVM 19.1 REQUIRED CONFIG HINTS /usr/lib/llvm-19/lib/cmake/llvm)

# oneDNN comes from PyPI: headers and library lie in the environment's own folders. A wheel is built
# in an environment of its own, which says where.
if(SKBUILD)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -c "from importlib.metadata import files
header = next(f for f in files('onednn-devel-cpu-gomp') if f.name == 'dnnl.hpp')
print(header.locate().resolve().parents[1])"
    OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE LAMELLA_VENV COMMAND_ERROR_IS_FATAL ANY)
endif()
find_path(ONEDNN_INCLUDE dnnl.hpp PATHS ${LAMELLA_VENV}/include NO_DEFAULT_PATH REQUIRED)
find_library(ONEDNN_LIBRARY dnnl PATHS ${LAMELLA_VENV}/lib NO_DEFAULT_PATH REQUIRED)
add_library(lamella_onednn INTERFACE)
target_include_directories(lamella_onednn SYSTEM INTERFACE ${ONEDNN_INCLUDE})
target_link_libraries(lamella_onednn INTERFACE ${ONEDNN_LIBRARY})

# LLVM: the just-in-time compiler for the x86 CPU, linked statically inside liblamella.
llvm_map_components_to_libnames(LAMELLA_LLVM_LIBRARIES core orcjit native passes)
add_library(lamella_llvm INTERFACE)
target_include_directories(lamella_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
target_link_libraries(lamella_llvm INTERFACE ${LAMELLA_LLVM_LIBRARIES})

if(LAMELLA_SANITIZE STREQUAL "thread")
  set(LAMELLA_PARALLEL threads)
else()
  find_package(OpenMP REQUIRED COMPONENTS CXX)
  set(LAMELLA_PARALLEL openmp)
endif()
