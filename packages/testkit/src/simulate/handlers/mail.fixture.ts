// Sends a mail. The faulty handler sends another one in each attempt.
import { defineHandler, defineTask, type TaskContext } from '@bullpen/contract'
import { z } from 'zod'
import { effect } from '../effect.ts'
import { simulate } from '../simulate.ts'
import type { PlantedFault } from './planted-fault.fixture.ts'

const welcome = defineTask({ name: 'mail.welcome', queue: 'mail', input: z.object({ to: z.email() }) })
const input = { to: 'ann@example.com' }

const resources = () => ({
  mailer: {
    send: effect(async (_to: string, _text: string, _key?: string) => {}, { deduplicatedBy: (_to, _text, key) => key }),
  },
})

type Context = TaskContext<typeof welcome, ReturnType<typeof resources>>

const faulty = defineHandler(welcome, import.meta.url, async ({ input: { to }, resources: { mailer } }: Context) => {
  await mailer.send(to, 'Welcome!')
})

const idempotent = defineHandler(welcome, import.meta.url, async ({ input: { to }, once, resources }: Context) => {
  await once('mail', async (key) => {
    await resources.mailer.send(to, 'Welcome!', key)
    return null
  })
})

export const mailFault: PlantedFault = {
  name: 'a mail without an idempotency key',
  faulty: () => simulate(faulty, input, { resources }),
  idempotent: (options) => simulate(idempotent, input, { resources, ...options }),
  faults: [
    {
      kind: 'repeated',
      effect: 'mailer.send("ann@example.com", "Welcome!")',
      foundBy: ['crash', 'timeout', 'lock_lost'],
    },
  ],
}
