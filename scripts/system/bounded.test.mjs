// Programs that are run for a limited time.
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { runBounded } from './bounded.mjs'

/** The shell's child inherits its output, which therefore only ends when both have ended. */
const SHELL_WITH_CHILD = 'echo started > "$0"; sleep 600 & wait'

function startedFile() {
  const dir = mkdtempSync(join(tmpdir(), 'bullpen-bounded-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  return join(dir, 'started')
}

it('the output and the exit code of a program that ends in time are returned', async () => {
  const result = await runBounded('sh', ['-c', 'echo out; echo err >&2; exit 3'], { timeoutMs: 60_000 })
  expect(result).toEqual({ code: 3, stdout: 'out\n', stderr: 'err\n', timedOut: false })
})

it('a program that is not there has code 127', async () => {
  const result = await runBounded('/nowhere/program', [], { timeoutMs: 60_000 })
  expect(result).toMatchObject({ code: 127, timedOut: false })
})

it('when the time is up, a program ends with the processes that it has started', async () => {
  const result = await runBounded('sh', ['-c', SHELL_WITH_CHILD, startedFile()], { timeoutMs: 300 })
  expect(result.timedOut).toBe(true)
})

it('when the signal aborts, a program ends with the processes that it has started', async () => {
  const stop = new AbortController()
  const file = startedFile()
  const running = runBounded('sh', ['-c', SHELL_WITH_CHILD, file], { timeoutMs: 600_000, signal: stop.signal })
  await expect.poll(() => existsSync(file), { timeout: 120_000 }).toBe(true)
  stop.abort()
  expect((await running).timedOut).toBe(false)
})
