// Sends a message that is not important. The faulty handler treats its own signal as if the message could not be delivered.
import { defineHandler, defineTask, type TaskContext } from '@bullpen/contract'
import { z } from 'zod'
import { effect } from '../effect.ts'
import { simulate } from '../simulate.ts'
import type { PlantedFault } from './planted-fault.fixture.ts'

const notify = defineTask({ name: 'user.notify', queue: 'messages', input: z.object({ user: z.string() }) })
const input = { user: 'ann' }

const resources = () => ({
  push: {
    send: effect(async (_user: string, _options: { key: string; signal: AbortSignal }) => {}, {
      deduplicatedBy: (_user, { key }) => key,
    }),
  },
})

type Context = TaskContext<typeof notify, ReturnType<typeof resources>>

const handlerOf = (isOwnSignal: (signal: AbortSignal) => boolean) =>
  defineHandler(notify, import.meta.url, async ({ id, input, log, signal, resources: { push } }: Context) => {
    try {
      await push.send(input.user, { key: id, signal })
    } catch (err) {
      if (isOwnSignal(signal)) throw err
      log.warn({ err }, 'message not delivered')
    }
  })

export const swallowedAbortFault: PlantedFault = {
  name: 'an abort error that is caught',
  faulty: () =>
    simulate(
      handlerOf(() => false),
      input,
      { resources },
    ),
  idempotent: (options) =>
    simulate(
      handlerOf(({ aborted }) => aborted),
      input,
      { resources, ...options },
    ),
  faults: [{ kind: 'missing', effect: 'push.send("ann", { key: <idempotency key> })', foundBy: ['drain'] }],
}
