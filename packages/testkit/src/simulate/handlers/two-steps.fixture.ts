// Moves money between two accounts. The faulty handler gives only the first of two steps a key.
import { defineHandler, defineTask, type TaskContext } from '@bullpen/contract'
import { z } from 'zod'
import { effect } from '../effect.ts'
import { simulate } from '../simulate.ts'
import type { PlantedFault } from './planted-fault.fixture.ts'

const transfer = defineTask({
  name: 'money.transfer',
  queue: 'payments',
  input: z.object({ from: z.string(), to: z.string(), cents: z.int() }),
})
const input = { from: 'ann', to: 'bob', cents: 500 }

const resources = () => {
  const book = effect(async (_account: string, _cents: number, _key?: string) => ({ booked: true }), {
    deduplicatedBy: (_account, _cents, key) => key,
  })
  return { bank: { withdraw: book, deposit: book } }
}

type Context = TaskContext<typeof transfer, ReturnType<typeof resources>>

const faulty = defineHandler(transfer, import.meta.url, async ({ input, once, resources: { bank } }: Context) => {
  const { from, to, cents } = input
  await once('withdraw', (key) => bank.withdraw(from, cents, key))
  await once('deposit', () => bank.deposit(to, cents))
})

const idempotent = defineHandler(transfer, import.meta.url, async ({ input, once, resources: { bank } }: Context) => {
  const { from, to, cents } = input
  await once('withdraw', (key) => bank.withdraw(from, cents, key))
  await once('deposit', (key) => bank.deposit(to, cents, key))
})

export const twoStepsFault: PlantedFault = {
  name: 'a step of ctx.once whose idempotency key is not sent',
  faulty: () => simulate(faulty, input, { resources }),
  idempotent: (options) => simulate(idempotent, input, { resources, ...options }),
  // After a drain or a timeout, the step is still stored within the grace period.
  faults: [{ kind: 'repeated', effect: 'bank.deposit("bob", 500)', foundBy: ['crash', 'lock_lost'] }],
}
