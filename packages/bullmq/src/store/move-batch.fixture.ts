// Two queues with the same tasks: the moves of one go out in one call of the script, and those of the other one by one.
import { randomUUID } from 'node:crypto'
import type { NewTask } from '@bullpen/engine'
import { Redis } from 'ioredis'
import { expect, inject, onTestFinished } from 'vitest'
import { modelTask } from '../internals/index-model/model-task.fixture.ts'
import { QUEUE } from '../internals/index-model/worker.fixture.ts'
import { queueKeys } from '../keys.ts'
import { runScript } from '../scripts/script.ts'
import { endArguments, type ScriptEnd } from './attempt-end.ts'
import type { MoveReply } from './move-batch.ts'
import { NO_CONDITIONS, newTaskArguments } from './new-task.ts'
import { stateOf } from './queue-state.fixture.ts'
import { addScript, endAndStartScript } from './scripts.ts'

export interface ScriptMove {
  readonly token: string
  readonly starts: boolean
  readonly end?: Omit<ScriptEnd, 'more'> & { readonly more?: ScriptEnd['more'] }
}

export interface StartOptions {
  readonly ownMax?: number
  readonly ownPerMs?: number
  readonly candidates?: string
  /** Whether the call is marked, because it may have been sent before. */
  readonly isRepeat?: boolean
}

export type QueueOfMoves = ReturnType<typeof queueOfMoves>

/** A queue whose moves a test sends itself. */
export function queueOfMoves() {
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const redis = new Redis(inject('redisUrl'), { maxRetriesPerRequest: null })
  onTestFinished(() => redis.disconnect())
  const keys = queueKeys(namespace, QUEUE)
  const moves = (time: number, all: readonly ScriptMove[], given: StartOptions = {}): Promise<readonly MoveReply[]> => {
    const { ownMax = '', ownPerMs = '', candidates = '', isRepeat = false } = given
    const more = all.flatMap(({ token, starts, end }) => [
      ...[token, starts ? '1' : '', end?.id ?? ''],
      ...(end === undefined ? [] : endArguments({ ...end, more: [...(end.more ?? [])] })),
    ])
    const length = more.length + endAndStartScript.args.length
    const sent = {
      base: keys.base,
      time,
      count: all.length,
      length,
      lockMs: 60_000,
      worker: 'w',
      ownMax,
      ownPerMs,
      candidates,
    }
    return runScript(redis, endAndStartScript, { any: keys.wait }, sent, isRepeat ? [...more, '1'] : more)
  }
  return {
    ...{ namespace, redis, keys, moves },
    async add(tasks: readonly NewTask[], data = '{}'): Promise<void> {
      const more = tasks.flatMap((task) => newTaskArguments(task, { data, followUps: '' }, NO_CONDITIONS))
      await runScript(
        redis,
        addScript,
        { any: keys.wait },
        { base: keys.base, isAll: '', length: more.length + 3 },
        more,
      )
    },
    /** Starts tasks with these tokens, and returns their ids. */
    async start(...tokens: readonly string[]): Promise<string[]> {
      const replies = await moves(
        Date.now(),
        tokens.map((token) => ({ token, starts: true })),
      )
      return replies.map((reply) => idOf(reply) ?? expect.fail('no task has started'))
    },
    state: () =>
      stateOf({ namespace, redis }, { ignores: (key) => !key.startsWith(keys.base) || key === keys.settings }),
  }
}

/** The id of the task that a move has started. */
export function idOf([, start]: MoveReply): string | undefined {
  return typeof start === 'object' && start[1] !== 0 ? start[1] : undefined
}

/** A task with an id of its own. Two queues can have the same one. */
export const newOne = (given: Partial<NewTask> = {}): NewTask => modelTask(0, { caller: 'only', ...given })

export const completed = (id: string, value = '{}'): NonNullable<ScriptMove['end']> => ({
  ...{
    id,
    verdict: 'completed',
    value,
    end: { id, token: '', verdict: 'completed', fencingToken: 1 },
    fields: undefined,
  },
})
