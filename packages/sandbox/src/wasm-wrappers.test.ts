// Tests that V8's cache of WebAssembly wrappers, which all threads share, stays empty.
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'

/** More calls than Node's own type stripping makes in the main thread before the flag is set. */
const BUDGET = 100_000

it('a handler in a thread that calls from WebAssembly often gets no wrapper in the cache', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'bullpen-sandbox-'))
  onTestFinished(() => rmSync(dir, { recursive: true }))
  const codes = join(dir, 'v8.log')
  const flags = [
    `--wasm-wrapper-tiering-budget=${BUDGET}`,
    '--log-code',
    '--no-logfile-per-isolate',
    `--logfile=${codes}`,
  ]
  const fixture = new URL('./wasm.fixture.ts', import.meta.url).pathname
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [...flags, fixture, `${BUDGET * 2}`])
  expect(JSON.parse(stdout)).toEqual({ called: BUDGET * 2 })
  // If V8 no longer knows the flag, check whether the workaround is still needed.
  expect(stderr).toBe('')
  const made = readFileSync(codes, 'utf8').split('\n')
  expect(made.length).toBeGreaterThan(1_000)
  expect(made.filter((line) => line.includes('wasm-to-js'))).toEqual([])
})
