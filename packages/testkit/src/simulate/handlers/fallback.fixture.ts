// Sends a text message, or a mail if the text message fails. The faulty handler also sends the mail when it is interrupted.
import { defineHandler, defineTask, type TaskContext } from '@bullpen/contract'
import { z } from 'zod'
import { effect } from '../effect.ts'
import { simulate } from '../simulate.ts'
import type { PlantedFault } from './planted-fault.fixture.ts'

const alert = defineTask({ name: 'user.alert', queue: 'alerts', timeout: '10s', input: z.object({ user: z.string() }) })
const input = { user: 'ann' }

const resources = () => {
  const send = effect(async (_user: string, _key: string, _signal?: AbortSignal) => null, {
    deduplicatedBy: (_user, key) => key,
  })
  return { sms: { send }, mailer: { send } }
}

type Context = TaskContext<typeof alert, ReturnType<typeof resources>>

const handlerOf = (isOwnSignal: (signal: AbortSignal) => boolean) =>
  defineHandler(alert, import.meta.url, async ({ input: { user }, once, signal, resources }: Context) => {
    try {
      await once('sms', (key) => resources.sms.send(user, key, signal))
    } catch (error) {
      if (isOwnSignal(signal)) throw error
      await once('mail', (key) => resources.mailer.send(user, key))
    }
  })

export const fallbackFault: PlantedFault = {
  name: 'a fallback that an interruption triggers',
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
  faults: [
    {
      kind: 'unexpected',
      effect: 'mailer.send("ann", <idempotency key>)',
      foundBy: ['drain', 'timeout', 'lock_lost'],
    },
    { kind: 'missing', effect: 'sms.send("ann", <idempotency key>)', foundBy: ['drain'] },
  ],
}
