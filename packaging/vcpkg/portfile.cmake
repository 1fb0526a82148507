# SPDX-License-Identifier: BSD-3-Clause
# An overlay port, which builds the clone that it lies in.
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../.." ABSOLUTE)
vcpkg_check_features(OUT_FEATURE_OPTIONS features FEATURES
	softhca GDR_BUILD_SOFTHCA
	cuda GDR_CUDA)
vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}"
	OPTIONS -DGDR_BUILD_TESTS=OFF -DGDR_BUILD_SAMPLES=OFF ${features})
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/gdr)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
