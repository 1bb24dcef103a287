"""The compiler: options, a job, its levels, the kernel made of it and its cached form, one subject a file."""

from mltriton.compiler.compilation import compile as compile
from mltriton.compiler.compilation import compile_job as compile_job
from mltriton.compiler.job import Job as Job
from mltriton.compiler.kernel import CompiledKernel as CompiledKernel
from mltriton.compiler.kernel import Metadata as Metadata
from mltriton.compiler.keys import constant_key as constant_key
from mltriton.compiler.levels import IR_LEVELS as IR_LEVELS
from mltriton.compiler.options import Options as Options
from mltriton.compiler.options import options_of as options_of
