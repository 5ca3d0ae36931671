/* A kernel that is wrong in the way named by the argument, for .ci/oclgrind to find: `bounds`
 * writes one element too far, `race` lets all items write one element, `none` is right. */
#include <CL/cl.h>
#include <stdio.h>
#include <string.h>

static const char *const source =
    "kernel void bounds(global float *x) { x[get_global_id(0) + 1] = 1.0f; }\n"
    "kernel void race(global float *x) { x[0] = (float)get_global_id(0); }\n"
    "kernel void none(global float *x) { x[get_global_id(0)] = 1.0f; }\n";

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "none";
    cl_platform_id platform;
    cl_device_id device;
    cl_int err = clGetPlatformIDs(1, &platform, NULL);
    err |= clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL);
    cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
    cl_command_queue queue = clCreateCommandQueue(context, device, 0, NULL);
    const char *text = source;
    cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, NULL);
    err |= clBuildProgram(program, 1, &device, "", NULL, NULL);
    cl_kernel kernel = clCreateKernel(program, name, NULL);
    const size_t count = 64;
    cl_mem x = clCreateBuffer(context, CL_MEM_READ_WRITE, count * sizeof(float), NULL, NULL);
    err |= clSetKernelArg(kernel, 0, sizeof x, &x);
    err |= clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &count, NULL, 0, NULL, NULL);
    err |= clFinish(queue);
    clReleaseMemObject(x);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    printf(err == CL_SUCCESS ? "[  PASSED  ] %s\n" : "[  FAILED  ] %s\n", name);
    return err != CL_SUCCESS;
}
