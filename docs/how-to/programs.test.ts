// Every program of a how-to page runs as it is quoted, against a real Redis, and prints what its page says.
import { spawn } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { programEnv } from '@bullpen/testing'
import { describe, expect, inject, it, onTestFinished } from 'vitest'

const programs = join(import.meta.dirname, 'programs')

async function run(args: readonly string[]): Promise<{ code: number | null; out: string; err: string }> {
  const env = programEnv({ REDIS_URL: inject('redisUrl') })
  const child = spawn(process.execPath, args, { cwd: programs, env, stdio: ['ignore', 'pipe', 'pipe'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  let [out, err] = ['', '']
  child.stdout.on('data', (text) => (out += text))
  child.stderr.on('data', (text) => (err += text))
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  return { code, out, err }
}

describe('a program of a how-to page', () => {
  const outputs = globSync('*.out', { cwd: programs })

  it.each(outputs)('prints %s', async (output) => {
    const { code, out, err } = await run([output.replace(/out$/, 'ts')])
    expect({ code, out }, err).toEqual({ code: 0, out: readFileSync(join(programs, output), 'utf8') })
  })
})

it('the tests of the testing page pass', async () => {
  const { code, out } = await run(['--test', '--test-reporter=tap', 'testing.test.ts'])
  expect(out).toMatch(/^# pass 3$/m)
  expect(code).toBe(0)
})
