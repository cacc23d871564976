// The fuzz's operations on groups and on the runs of pipelines, most of whose tasks are in the queue itself.
import { randomBytes } from 'node:crypto'
import { createGroupId, createIncarnation, createRunId } from '@bullpen/contract/internal'
import { freeOf, newGroup, type RunSettings } from '@bullpen/engine/internal'
import { modelTask } from '../../index-model/model-task.fixture.ts'
import { QUEUE, task } from '../../index-model/worker.fixture.ts'
import { OTHER_QUEUE } from '../fuzz-world.fixture.ts'
import { at, type FuzzOperations } from '../operation.fixture.ts'

const BY = 'ann'

function settingsOf(pick: number, n: number): RunSettings {
  return {
    ...{ id: createRunId(Date.now(), randomBytes(10)), incarnation: createIncarnation(randomBytes(10)) },
    ...{ pipeline: 'p', by: BY, onError: pick % 2 === 0 ? 'collect' : 'cancel', maxErrors: 5, ordered: n % 2 === 0 },
    ...{
      take: n % 5 === 0 ? 3 : undefined,
      totalMs: 86_400_000,
      keepMs: 60_000,
      source: { task: task.name, queue: QUEUE },
    },
    stages: [{ task: task.name, queue: QUEUE, concurrency: 3, buffer: 2 }],
    reduce: n % 3 === 0 ? { task: task.name, queue: QUEUE, maxBytes: 10_000 } : undefined,
  }
}

export const COLLECTIONS: FuzzOperations = {
  'create a group': [
    2,
    async ({ broker, groups }, pick) => {
      const id = createGroupId(Date.now(), randomBytes(10))
      await broker.groups.create(newGroup(id, { onError: pick % 2 === 0 ? 'cancel' : 'continue' }, BY))
      groups.push(id)
    },
  ],
  'enqueue the members of a group': [
    4,
    async ({ broker, groups }, pick, n) => {
      const id = at(groups.slice(-2), pick)
      if (id === undefined) return false
      const tasks = [0, 1, 2].map((i) =>
        modelTask(n, { maxAttempts: 2, queue: (n + i) % 7 === 0 ? OTHER_QUEUE : QUEUE }),
      )
      return broker.groups.add(id, { key: `k${n}`, digest: 'd', tasks, seal: n % 3 === 0 })
    },
  ],
  'seal a group': [
    2,
    ({ broker, groups }, pick) => {
      const id = at(groups.slice(-2), pick)
      return id !== undefined && broker.groups.seal(id)
    },
  ],
  'cancel a group': [
    1,
    ({ broker, groups }, pick) => {
      const id = at(groups.slice(-2), pick)
      return id !== undefined && broker.groups.cancel(id, BY)
    },
  ],
  'enqueue the tasks of a run': [
    2,
    async ({ broker, runs }, pick, n) => {
      const settings = settingsOf(pick, n)
      const tasks = [0, 1, ...(settings.reduce === undefined ? [] : [2])].map((i) =>
        modelTask(i, { delayMs: undefined, maxAttempts: 2 }),
      )
      await broker.runs.start({ settings, tasks })
      runs.push(settings)
    },
  ],
  'enqueue what a source emits': [
    8,
    async ({ broker, runs }, pick, n) => {
      const settings = at(runs.slice(-2), pick)
      const run = settings && (await broker.runs.find(settings.id))
      if (settings === undefined || run === undefined || run.source.isExhausted) return false
      const { segment, emitted } = run.source
      const values = [1, 2].slice(0, Math.max(0, freeOf(run))).map((value) => broker.runs.encode({ n: value }))
      return broker.runs.emit(settings, {
        ...{ segment, fencingToken: Math.max(1, run.source.fencingToken), from: emitted, values, count: values.length },
        ...{ digest: `d${emitted}`, cursor: '', isLast: n % 4 === 0 },
      })
    },
  ],
  'cancel a run': [
    1,
    ({ broker, runs }, pick) => {
      const run = at(runs.slice(-2), pick)
      return run !== undefined && broker.runs.cancel(run.id, BY)
    },
  ],
}
