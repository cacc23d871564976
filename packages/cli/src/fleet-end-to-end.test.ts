// Tests the fleet commands on real workers, through the real API and a real Redis.
import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createApi } from '@bullpen/api'
import type { CommandView, FleetView, TaskView } from '@bullpen/contract'
import { eventually } from '@bullpen/testkit'
import { expect, inject, onTestFinished, test } from 'vitest'
import { slowTasks } from '../../worker/src/ignores-abort-worker.fixture.ts'
import { run } from './capture.fixture.ts'
import { FAKE_KEY } from './fake-api.fixture.ts'

const WORKER = new URL('../../worker/src/ignores-abort-worker.fixture.ts', import.meta.url).pathname

/** Two processes load the whole worker, which takes long on a busy machine. */
const START_TIMEOUT_MS = 120_000

async function startFleet() {
  const namespace = `t-${randomUUID().slice(0, 8)}`
  const redisUrl = inject('redisUrl')
  const lines: object[] = []
  const silent = { debug() {}, info: (fields: object) => lines.push(fields), warn() {}, error() {} }
  const config = { redisUrl, keys: [FAKE_KEY], port: 0, metricsPort: 0, namespace }
  const api = await createApi({ catalogue: slowTasks, config, log: silent })
  onTestFinished(() => api.close())
  const { url } = await api.listen()
  const bullpen = (...args: string[]) => run({ url }, args)
  const asJson = async <T>(...args: string[]) =>
    JSON.parse((await bullpen(...args, '--json')).out.split('\n')[0] ?? '') as T
  const children: ChildProcess[] = []
  for (let i = 0; i < 2; i++) {
    const child = spawn(process.execPath, [WORKER, redisUrl, namespace], { stdio: 'ignore' })
    onTestFinished(() => void child.kill('SIGKILL'))
    children.push(child)
  }
  const running = ({ workers }: FleetView) => workers.filter(({ pools }) => pools[0]?.state === 'BG_RUNNING')
  await eventually(async () => running(await asJson<FleetView>('fleet')).length === 2, START_TIMEOUT_MS)
  const { workers } = await asJson<FleetView>('fleet')
  const nameOf = (child: ChildProcess) => workers.find(({ pid }) => pid === child.pid)?.worker ?? ''
  return { bullpen, asJson, lines, children, names: children.map(nameOf) }
}

test('a fleet is paused, resized, stopped and drained by command, and no task is lost', async () => {
  const { bullpen, asJson, lines, children, names } = await startFleet()
  const [first = '', second = ''] = names

  // With the second worker paused, the first one gets the task.
  expect(await bullpen('pause', '--worker', second.slice(0, -4))).toMatchObject({
    code: 0,
    out: expect.stringContaining(`${second}  done  paused: slow\n`),
  })
  const { id } = await asJson<TaskView>('enqueue', 'slow.listening', '{"ms":30000}')
  const working = new RegExp(`${first}/slow/\\d  running a task +\\S+  slow.listening  ${id}`)
  await eventually(async () => working.test((await bullpen('fleet', '--slots')).out))
  const dry = await bullpen('drain', '--worker', first, '--dry-run')
  expect(dry).toMatchObject({
    code: 1,
    out: expect.stringMatching(
      /1 running task, longest \S+ {2}1 may be signalled.*\n.*: 1 of 1 may be signalled and returned to the queue\n$/,
    ),
  })
  expect(await bullpen('drain', '--worker', first, '--dry-run', '--mode', 'light')).toMatchObject({ code: 0 })

  expect(await bullpen('resize', '--queue', 'slow', '--worker', second, '--concurrency', '2')).toMatchObject({
    code: 0,
  })
  expect(await bullpen('stop', `${second}/slow/1`)).toMatchObject({ code: 0 })
  expect(await bullpen('stop', `${second}/slow/99`)).toMatchObject({ code: 1, out: expect.stringContaining('refused') })
  const sizeOf = async (name: string) => {
    const { workers } = await asJson<FleetView>('fleet')
    return workers.find(({ worker }) => worker === name)?.pools[0]?.concurrency
  }
  await eventually(async () => (await sizeOf(second)) === 1)
  expect(await bullpen('resume', '--worker', second)).toMatchObject({ code: 0 })

  const exited = once(children[0] as ChildProcess, 'exit')
  expect(await bullpen('drain', '--worker', first, '--wait', '20s')).toMatchObject({
    code: 0,
    out: expect.stringContaining(`${first}: drained\n`),
  })
  expect((await exited)[0]).toBe(0)
  await eventually(async () =>
    new RegExp(`${second}/slow/\\d +running a task`).test((await bullpen('fleet', '--slots')).out),
  )
  expect(await asJson<TaskView>('show', id)).toMatchObject({ status: 'active', fencingToken: 2, attemptsMade: 0 })

  expect(await bullpen('drain', '--queue', 'slow', '--mode', 'hard', '--wait', '20s')).toMatchObject({ code: 0 })
  expect(await bullpen('enqueue', 'slow.listening', '{"ms":1}')).toMatchObject({
    code: 3,
    err: expect.stringContaining('queue_draining'),
  })
  expect(await asJson<TaskView>('show', id)).toMatchObject({ status: 'waiting', fencingToken: 2, attemptsMade: 0 })
  expect(await bullpen('resume', '--queue', 'slow')).toMatchObject({ code: 0 })
  const { id: next } = await asJson<TaskView>('enqueue', 'slow.short', '{"ms":1}')
  await bullpen('cancel', id)
  expect(await bullpen('show', next, '--wait', '20s')).toMatchObject({ code: 0 })

  const { commands } = await asJson<{ commands: CommandView[] }>('audit')
  expect(commands.map(({ spec, outcome }) => `${spec.action} ${outcome}`)).toEqual([
    'resume done',
    'drain done',
    'drain done',
    'resume done',
    'stop refused',
    'stop done',
    'resize done',
    'pause done',
  ])
  const audited = lines.filter((line): line is { command: string } => 'command' in line).map(({ command }) => command)
  expect(audited).toEqual(commands.map((command) => command.id).reverse())
})
