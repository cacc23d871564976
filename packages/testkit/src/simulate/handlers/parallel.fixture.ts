// Sends two messages at the same time. The faulty handler starts again from the beginning if one of them is interrupted.
import { defineHandler, defineTask, type TaskContext } from '@bullpen/contract'
import { z } from 'zod'
import { effect } from '../effect.ts'
import { simulate } from '../simulate.ts'
import type { PlantedFault } from './planted-fault.fixture.ts'

const announce = defineTask({ name: 'news.announce', queue: 'news', input: z.object({ users: z.array(z.string()) }) })
const input = { users: ['ann', 'bob'] }

const resources = () => ({
  mailer: {
    send: effect(async (_user: string, _options: { key?: string; signal: AbortSignal }) => ({ sent: true }), {
      deduplicatedBy: (_user, { key }) => key,
    }),
  },
})

type Context = TaskContext<typeof announce, ReturnType<typeof resources>>

const faulty = defineHandler(announce, import.meta.url, async ({ input, signal, resources: { mailer } }: Context) => {
  await Promise.all(input.users.map((user) => mailer.send(user, { signal })))
})

const idempotent = defineHandler(announce, import.meta.url, async (context: Context) => {
  const { input, signal, once, resources } = context
  await Promise.all(
    input.users.map((user) => once(`mail ${user}`, (key) => resources.mailer.send(user, { key, signal }))),
  )
})

export const parallelFault: PlantedFault = {
  name: 'parallel messages without idempotency keys',
  faulty: () => simulate(faulty, input, { resources }),
  idempotent: (options) => simulate(idempotent, input, { resources, ...options }),
  faults: ['ann', 'bob'].map((user) => ({
    kind: 'repeated',
    effect: `mailer.send("${user}", {})`,
    foundBy: ['crash', 'drain', 'timeout', 'lock_lost'],
  })),
}
