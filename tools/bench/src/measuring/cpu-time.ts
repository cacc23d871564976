// Measures the CPU time that this process and Redis use.

/** CPU time in µs. */
export interface CpuTime {
  readonly process: number
  readonly redis: number
}

interface Server {
  info(section: string): Promise<string>
}

/** Returns the CPU time that Redis has used since it started, in µs. */
export async function readRedisCpu(redis: Server): Promise<number> {
  const info = await redis.info('cpu')
  const seconds = ['user', 'sys'].map((each) => Number(new RegExp(`used_cpu_${each}:([\\d.]+)`).exec(info)?.[1]))
  return seconds.reduce((sum, each) => sum + each, 0) * 1e6
}

/** Returns a function that returns the CPU time since this call. */
export async function startCpuTime(redis: Server): Promise<() => Promise<CpuTime>> {
  const read = async (): Promise<CpuTime> => {
    const { user, system } = process.cpuUsage()
    return { process: user + system, redis: await readRedisCpu(redis) }
  }
  const before = await read()
  return async () => {
    const after = await read()
    return { process: after.process - before.process, redis: after.redis - before.redis }
  }
}
