// Measures the CPU time that this process and Redis use.

/** CPU time in µs. */
export interface CpuTime {
  readonly process: number
  readonly redis: number
}

/** Returns a function that returns the CPU time since this call. */
export async function startCpuTime(redis: { info(section: string): Promise<string> }): Promise<() => Promise<CpuTime>> {
  const read = async (): Promise<CpuTime> => {
    const { user, system } = process.cpuUsage()
    const info = await redis.info('cpu')
    const seconds = ['user', 'sys'].map((each) => Number(new RegExp(`used_cpu_${each}:([\\d.]+)`).exec(info)?.[1]))
    return { process: user + system, redis: seconds.reduce((sum, each) => sum + each, 0) * 1e6 }
  }
  const before = await read()
  return async () => {
    const after = await read()
    return { process: after.process - before.process, redis: after.redis - before.redis }
  }
}
