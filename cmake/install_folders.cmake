# Where things are installed: below a prefix, or where scikit-build-core says in a wheel.
if(SKBUILD)
  set(ARGOSY_PROGRAMS ${SKBUILD_SCRIPTS_DIR})
  set(ARGOSY_SHARE ${SKBUILD_DATA_DIR}/share/argosy)
  set(ARGOSY_PACKAGES ${SKBUILD_PLATLIB_DIR})
  set(ARGOSY_MODULES ${SKBUILD_DATA_DIR}/lib/argosy)
else()
  set(ARGOSY_PROGRAMS bin)
  set(ARGOSY_SHARE share/argosy)
  set(ARGOSY_PACKAGES lib/python)
  set(ARGOSY_MODULES lib/argosy)
endif()
# What lies in source folders after they were used.
set(ARGOSY_LEFT_OUT PATTERN __pycache__ EXCLUDE PATTERN "output_model_*" EXCLUDE PATTERN data EXCLUDE)
