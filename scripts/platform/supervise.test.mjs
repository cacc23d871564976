// Supervision of real, tiny processes.
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
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
    args: ['--import', join(import.meta.dirname, 'exit-with-parent.mjs'), 'main.mjs'],
    env: process.env,
    cwd: dir,
    logFile: join(dir, 'log'),
    say: (line) => said.push(line),
    onLine: (line) => lines.push(line),
    onStart: (pid) => pids.push(pid),
    ...options,
  })
}
const until = (check) => vi.waitFor(() => expect(check()).toBeTruthy(), { timeout: 120_000, interval: 10 })
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

it('the delay between restarts doubles, up to ten seconds', () => {
  expect([0, 1, 2, 3, 4, 5, 6].map(restartDelay)).toEqual([500, 1000, 2000, 4000, 8000, 10_000, 10_000])
})

it('restarts a killed process, and prints its new process id', async () => {
  start(DRAINS)
  await until(() => lines.includes('up'))
  process.kill(child.pid, 'SIGKILL')
  await until(() => pids.length === 2 && lines.filter((line) => line === 'up').length === 2)
  expect(pids[0]).not.toBe(pids[1])
  expect(said).toEqual(['worker-1 was killed by SIGKILL; restarting it in 0.5 s'])
})

it('a stopped process drains, without a message, and its log is kept', async () => {
  start(DRAINS)
  await until(() => lines.includes('up'))
  await child.stop()
  expect(child.running()).toBe(false)
  await until(() => readFileSync(join(dir, 'log'), 'utf8') === 'up\ndrained\n')
  expect(said).toEqual([])
})

it('a restart on request drains the process and runs the changed code', async () => {
  start(DRAINS)
  await until(() => lines.includes('up'))
  writeFileSync(join(dir, 'main.mjs'), "console.log('new'); setInterval(() => {}, 1e3)")
  await child.restart()
  await until(() => lines.includes('new'))
  expect(lines).toEqual(['up', 'drained', 'new'])
  expect(said).toEqual([])
})

it('a process is not restarted if the owner declines', async () => {
  const deaths = []
  start('process.exit(3)', { onDeath: (how) => deaths.push(how) && false })
  await until(() => deaths.length > 0)
  expect(deaths).toEqual(['exited with code 3'])
  expect({ running: child.running(), said }).toEqual({ running: false, said: [] })
})

it('the log file is readable by its owner only, also if it existed before', async () => {
  writeFileSync(join(dir, 'log'), 'from an earlier run\n', { mode: 0o644 })
  start(DRAINS)
  await until(() => lines.includes('up'))
  expect(statSync(join(dir, 'log')).mode & 0o777).toBe(0o600)
  expect(readFileSync(join(dir, 'log'), 'utf8')).toMatch(/^from an earlier run\n/)
})

it('a process drains and exits when its supervisor is killed', async () => {
  // its output has no reader any more: it reports in a file
  const drains = "process.on('SIGTERM', () => { writeFileSync('drained', 'yes'); process.exit() })"
  writeFileSync(
    join(dir, 'main.mjs'),
    `import { writeFileSync } from 'node:fs'\n${drains}; setInterval(() => {}, 1e3); console.log('up')`,
  )
  const module = (name) => JSON.stringify(join(import.meta.dirname, name))
  const script = `
    import { supervise } from ${module('supervise.mjs')}
    const args = ['--import', ${module('exit-with-parent.mjs')}, 'main.mjs']
    supervise({ name: 'x', command: process.execPath, args, cwd: ${JSON.stringify(dir)}, logFile: 'log', env: {},
      say: () => {}, onLine: (line) => console.log(line) })`
  const supervisor = spawn(process.execPath, ['--input-type=module', '-e', script], {
    cwd: dir,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await new Promise((resolve) => createInterface(supervisor.stdout).once('line', resolve))
  supervisor.kill('SIGKILL')
  await until(() => existsSync(join(dir, 'drained')))
})
