// V8's cache of WebAssembly wrappers, which threads would share: nothing comes into it.
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'

/** More calls than Node's own type stripping makes in the main thread, where the flag comes too late. */
const BUDGET = 100_000

it('has no wrapper of what a handler calls from WebAssembly in a thread, however often', async () => {
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
  // Where V8 says that it does not know the flag, it is time to look whether it is still needed.
  expect(stderr).toBe('')
  const made = readFileSync(codes, 'utf8').split('\n')
  expect(made.length).toBeGreaterThan(1_000)
  expect(made.filter((line) => line.includes('wasm-to-js'))).toEqual([])
})
