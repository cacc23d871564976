// The tutorial on pipelines, done as it says: the digests of one directory, in one process and on two workers.
import { execFile, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { programEnv } from '@bullpen/testing'
import { expect, inject, it, onTestFinished } from 'vitest'

const programs = join(import.meta.dirname, 'tutorial/pipelines')
const env = programEnv({
  REDIS_URL: inject('redisUrl'),
  BULLPEN_NAMESPACE: `pipelines-${randomUUID().slice(0, 8)}`,
  BULLPEN_WORKER_PORT: '0',
})

async function run(file: string, ...args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [file, ...args], { cwd: programs, env })
  return stdout
}

async function startWorker(): Promise<void> {
  const worker = spawn(process.execPath, ['worker.ts'], { cwd: programs, env, stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void worker.kill('SIGKILL'))
  for await (const line of createInterface({ input: worker.stdout })) if (line.includes('worker ready')) break
  worker.stdout.resume()
}

it('the squares of the squares are printed', async () => {
  expect(await run('squares.ts')).toBe('[ 16, 81 ]\n')
})

it('functions, tasks in one process and tasks on two workers print what md5sum prints', async () => {
  const md5sum = `find ${programs} -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum`
  const [{ stdout: expected }, functions, local] = await Promise.all([
    promisify(execFile)('sh', ['-c', md5sum]),
    run('functions.ts', programs),
    run('local.ts', programs),
    startWorker(),
    startWorker(),
  ])
  expect(functions).toBe(expected)
  expect(local).toBe(expected)
  expect(await run('fleet.ts', programs)).toBe(expected)
})
