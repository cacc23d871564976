// The Python program of a how-to page runs as it is quoted, against the API of the example, and prints what its page says.
import { execFile, execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createApi } from '@bullpen/api'
import { defineCatalogue, defineHandler } from '@bullpen/contract'
import { mathFactorial } from '@bullpen/tasks'
import { createWorker } from '@bullpen/worker'
import { expect, inject, it, onTestFinished } from 'vitest'

const programs = join(import.meta.dirname, 'programs/python')
const silent = { debug() {}, info() {}, warn() {}, error() {} }

function hasPython(): boolean {
  try {
    execFileSync('python3', ['-c', 'import urllib.request'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

it.runIf(hasPython())('the Python program prints what its page says', { timeout: 60_000 }, async () => {
  const key = randomUUID()
  const catalogue = defineCatalogue(mathFactorial)
  const common = { redisUrl: inject('redisUrl'), namespace: `t-${key.slice(0, 8)}` }
  const api = await createApi({ catalogue, log: silent, config: { ...common, keys: [key], port: 0, metricsPort: 0 } })
  onTestFinished(() => api.close())
  const factorial = defineHandler(mathFactorial, import.meta.url, async ({ input: { n } }) => ({
    value: Array.from({ length: n }, (_, i) => BigInt(i + 1))
      .reduce((product, each) => product * each, 1n)
      .toString(),
  }))
  const handlers = { 'math.factorial': factorial }
  const worker = createWorker({ catalogue, handlers, config: { ...common, port: 0, logLevel: 'silent' } })
  onTestFinished(async () => void (await worker.drain()))
  await worker.start()
  const { url } = await api.listen()
  const env = { PATH: process.env['PATH'], URL: url, KEY: key }
  const { stdout } = await promisify(execFile)('python3', ['enqueue.py'], { cwd: programs, env })
  expect(stdout).toBe(readFileSync(join(programs, 'enqueue.out'), 'utf8'))
})
