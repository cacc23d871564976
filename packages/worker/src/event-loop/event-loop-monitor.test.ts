// Tests the log of worker processes whose event loop is blocked by a handler.

import { spawn } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { checkSettings, WORKER_SETTINGS } from '@bullpen/config'
import { createTaskId } from '@bullpen/contract/internal'
import { newTask } from '@bullpen/engine/internal'
import { programEnv } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { openPatientBroker } from '../patient-connections.fixture.ts'
import { blockingTasks, releaseFile } from './blocking-worker.fixture.ts'

type Line = Readonly<Record<string, unknown>>

const FIXTURE = new URL('./blocking-worker.fixture.ts', import.meta.url).pathname

/** `file:line` of the only line of the fixture that holds `code`. */
function lineWith(code: string): string {
  const at = readFileSync(FIXTURE, 'utf8')
    .split('\n')
    .flatMap((line, index) => (line.includes(code) ? [index + 1] : []))
  expect(at).toHaveLength(1)
  return `${FIXTURE}:${at[0]}`
}

async function worker(eventLoopStallWarning: string) {
  const [redisUrl, namespace] = [inject('redisUrl'), `t-${randomUUID().slice(0, 12)}`]
  const broker = openPatientBroker({ redisUrl, namespace, queues: blockingTasks.queues })
  const child = spawn(process.execPath, [FIXTURE, redisUrl, namespace, eventLoopStallWarning], {
    env: programEnv(),
  })
  let [output, stderr] = ['', '']
  child.stdout.on('data', (chunk) => (output += chunk))
  child.stderr.on('data', (chunk) => (stderr += chunk))
  const exited = new Promise<number | null>((resolve) => child.on('exit', (code) => resolve(code)))
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await Promise.allSettled(broker.boardQueues.map((queue) => queue.obliterate({ force: true })))
    await broker.close()
  })
  const lines = (message: string): Line[] =>
    output
      .split('\n')
      .filter((line) => line.endsWith('}') && line.includes(message))
      .map((line) => JSON.parse(line) as Line)
  const [ready] = await eventually(() => lines('worker ready').length > 0 && lines('worker ready'))
  return {
    child,
    lines,
    stderr: () => stderr,
    url: String(ready?.['url']),
    async enqueue(task: string, ms: number): Promise<string> {
      const id = createTaskId('slow', Date.now(), randomBytes(10))
      const origin = { id, enqueuedAt: Date.now(), correlationId: undefined }
      await broker.enqueue(newTask(blockingTasks.get(task), { ms }, {}, origin))
      return id
    },
    ended: (id: string) => eventually(() => lines('"verdict":').find((line) => line['id'] === id)),
    async drain(): Promise<number | null> {
      child.kill('SIGTERM')
      return exited
    },
  }
}

describe('a handler that blocks the event loop forever', () => {
  it('is logged with its location while it blocks, and again while that lasts', async () => {
    const { child, enqueue, lines } = await worker('500ms')
    const innocent = await enqueue('block.waiting', 60_000)
    await eventually(() => lines('attempt started').some((line) => line['id'] === innocent))
    const id = await enqueue('block.forever', 50)
    const [first, second] = await eventually(() => {
      const named = lines('event loop blocked').filter((line) => line['id'] === id)
      return named.length > 1 && named
    })
    const who = { name: 'bullpen-worker', task: 'block.forever', id, fencingToken: 1, attempt: 1 }
    const location = lineWith('while (true) {}')
    expect(first).toMatchObject({ ...who, location, pid: child.pid })
    expect(second).toMatchObject({ ...who, location, level: 'error' })
    expect(first?.['stalledMs']).toBeGreaterThanOrEqual(500)
    expect(second?.['stalledMs']).toBeGreaterThanOrEqual(1_000)
  })
})

describe('a handler that blocks the event loop for a while', () => {
  it('is logged during and after the stall, and counted; the worker then drains normally', async () => {
    const { url, enqueue, lines, ended, drain, stderr } = await worker('500ms')
    // It blocks until the test has read the line that names it, so that a busy machine cannot end the stall too early.
    const id = await enqueue('block.until-released', 200)
    const who = { task: 'block.until-released', id, fencingToken: 1, attempt: 1 }
    const location = `block (${lineWith('Atomics.wait(')})`
    const during = await eventually(() => lines('event loop blocked').find((line) => line['id'] === id))
    writeFileSync(releaseFile(id), '')
    onTestFinished(() => rmSync(releaseFile(id)))
    await ended(id)
    expect(during).toMatchObject({ ...who, location })
    const over = await eventually(() => lines('event loop stalled').find((line) => line['id'] === id))
    expect(over).toMatchObject({ ...who, location, level: 'warn' })
    expect(over['stalledMs']).toBeGreaterThanOrEqual(500)
    const metrics = await (await fetch(`${url}/metrics`)).text()
    expect(metrics).toContain('bullpen_event_loop_stalls_total{task="block.until-released"} 1')
    expect(await drain()).toBe(0)
    // No message of Node's about a debugger.
    expect(stderr()).toBe('')
  })

  it('is named by its task, even if it lasts longer than its handler', async () => {
    const { enqueue, lines, drain } = await worker('500ms')
    const id = await enqueue('block.after-return', 50)
    const during = await eventually(() => lines('event loop blocked').find((line) => line['id'] === id))
    onTestFinished(() => {
      for (const file of [id, `${id}-after`]) rmSync(releaseFile(file), { force: true })
    })
    writeFileSync(releaseFile(id), '')
    // A sample that is taken after the handler has returned names no task.
    const samples = lines('event loop blocked').length
    await eventually(() => lines('event loop blocked').length > samples + 1)
    writeFileSync(releaseFile(`${id}-after`), '')
    const isLater = (line: Line): boolean => String(line['time']) > String(during['time'])
    const over = await eventually(() => lines('event loop stalled').find(isLater))
    expect(over).toMatchObject({ task: 'block.after-return', id, location: during['location'] })
    expect(await drain()).toBe(0)
  })

  it('in native code is logged without a name, and named as soon as the code returns', async () => {
    const { enqueue, lines, ended, drain } = await worker('500ms')
    const id = await enqueue('block.native', 0)
    onTestFinished(() => rmSync(releaseFile(id), { force: true }))
    await eventually(() => lines('blocked in native code').length > 0)
    writeFileSync(releaseFile(id), '')
    await ended(id)
    const over = await eventually(() => lines('event loop stalled').find((line) => line['id'] === id))
    expect(over).toMatchObject({ task: 'block.native', id, location: lineWith('execFileSync(') })
    expect(await drain()).toBe(0)
  })
})

describe('the monitor', () => {
  it('does not report work that yields', async () => {
    const { enqueue, lines, ended, drain } = await worker('1.5s')
    const id = await enqueue('block.yielding', 3_000)
    await ended(id)
    expect(lines('event loop').filter((line) => line['id'] === id)).toEqual([])
    expect(await drain()).toBe(0)
  })

  it('reports nothing when the setting is none', async () => {
    const { enqueue, lines, ended, drain } = await worker('none')
    const id = await enqueue('block.native', 1_000)
    onTestFinished(() => rmSync(releaseFile(id), { force: true }))
    writeFileSync(releaseFile(id), '')
    await ended(id)
    expect(await drain()).toBe(0)
    expect(lines('event loop')).toEqual([])
  })
})

describe('the setting eventLoopStallWarning', () => {
  it.each(['500ms', '1.5s', 'none'])('may be %s', (eventLoopStallWarning) => {
    expect(checkSettings(WORKER_SETTINGS, [], { eventLoopStallWarning })).toMatchObject({ eventLoopStallWarning })
  })

  it('is refused when it is shorter than the monitor can measure, or has no unit', () => {
    expect(() => checkSettings(WORKER_SETTINGS, [], { eventLoopStallWarning: '100ms' })).toThrow(
      /expected a duration of at least "500ms"/,
    )
    expect(() => checkSettings(WORKER_SETTINGS, [], { eventLoopStallWarning: '2' })).toThrow(
      /expected a duration of at least "500ms" such as "2s"/,
    )
  })
})
