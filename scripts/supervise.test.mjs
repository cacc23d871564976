// Supervision with real, tiny processes.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { restartDelay, supervise } from './supervise.mjs'

let dir
let child
const said = []
const lines = []
const pids = []

function start(body, options = {}) {
  writeFileSync(join(dir, 'main.mjs'), body)
  child = supervise({
    name: 'worker-1',
    command: process.execPath,
    args: ['--import', join(import.meta.dirname, 'leash.mjs'), 'main.mjs'],
    env: process.env,
    cwd: dir,
    logFile: join(dir, 'log'),
    say: (line) => said.push(line),
    onLine: (line) => lines.push(line),
    onStart: (pid) => pids.push(pid),
    ...options,
  })
}
const until = (check) => vi.waitFor(() => expect(check()).toBeTruthy(), { timeout: 5000, interval: 10 })
const DRAINS =
  "process.on('SIGTERM', () => { console.log('drained'); process.exit() }); setInterval(() => {}, 1e3); console.log('up')"

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'bullpen-supervise-'))
  for (const list of [said, lines, pids]) list.length = 0
})
afterEach(async () => {
  await child?.stop()
  rmSync(dir, { recursive: true, force: true })
})

it('doubles the delay between restarts, up to ten seconds', () => {
  expect([0, 1, 2, 3, 4, 5, 6].map(restartDelay)).toEqual([500, 1000, 2000, 4000, 8000, 10_000, 10_000])
})

it('starts what was killed again, under another process id, and says so', async () => {
  start(DRAINS)
  await until(() => lines.includes('up'))
  process.kill(child.pid, 'SIGKILL')
  await until(() => pids.length === 2 && lines.filter((line) => line === 'up').length === 2)
  expect(pids[0]).not.toBe(pids[1])
  expect(said).toEqual(['worker-1 was ended by SIGKILL; starting it again in 0.5 s'])
})

it('drains on stop, says nothing of it, and keeps the log', async () => {
  start(DRAINS)
  await until(() => lines.includes('up'))
  await child.stop()
  expect(child.running()).toBe(false)
  await until(() => readFileSync(join(dir, 'log'), 'utf8') === 'up\ndrained\n')
  expect(said).toEqual([])
})

it('restarts on request with the code as it is then', async () => {
  start(DRAINS)
  await until(() => lines.includes('up'))
  writeFileSync(join(dir, 'main.mjs'), "console.log('new'); setInterval(() => {}, 1e3)")
  await child.restart()
  await until(() => lines.includes('new'))
  expect(lines).toEqual(['up', 'drained', 'new'])
  expect(said).toEqual([])
})

it('leaves it dead when the owner says so', async () => {
  const deaths = []
  start('process.exit(3)', { onDeath: (how) => deaths.push(how) && false })
  await until(() => deaths.length > 0)
  expect(deaths).toEqual(['exited with 3'])
  expect({ running: child.running(), said }).toEqual({ running: false, said: [] })
})
