// Functions compiled once for each vector width; the widest the CPU has is picked when the library
// is loaded. Contraction is off (-ffp-contract=off), so every copy gives the same bits.
#pragma once

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define LAMELLA_VECTORIZED \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define LAMELLA_VECTORIZED
#endif
