# SPDX-License-Identifier: BSD-3-Clause
import os

from spack.package import *


class Gdr(CMakePackage, CudaPackage):
    """GPU-initiated PGAS runtime: a symmetric heap of registered GPU memory, and RDMA that CUDA kernels post themselves,
    with no CPU in the path. Builds the clone that this recipe lies in."""

    git = "file://" + os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 4))
    license("BSD-3-Clause")

    version("main", branch="main")
    version("0.1.0", tag="v0.1.0")

    variant("softhca", default=False, description="softhca, an mlx5 device in user space")
    variant("libfabric", default=False, description="the transport over libfabric")
    variant("mpi", default=False, description="init by an MPI communicator")
    variant("doc", default=False, description="man pages and HTML of the API")

    depends_on("c", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("doxygen", type="build", when="+doc")
    depends_on("rdma-core")
    depends_on("pmix@4.1:")
    depends_on("libfabric", when="+libfabric")
    depends_on("mpi", when="+mpi")

    def cmake_args(self):
        args = [
            self.define("GDR_BUILD_TESTS", False),
            self.define("GDR_BUILD_SAMPLES", False),
            self.define_from_variant("GDR_BUILD_SOFTHCA", "softhca"),
            self.define_from_variant("GDR_CUDA", "cuda"),
        ]
        if self.spec.satisfies("+cuda") and "none" not in self.spec.variants["cuda_arch"].value:
            args.append(self.define("GDR_CUDA_ARCH", self.spec.variants["cuda_arch"].value))
        return args
