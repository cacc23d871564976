// Sends an invoice unless the database says that it was sent. Sending and recording are one transaction. The faulty handler checks
// before the transaction, so two attempts that overlap both send.
import { defineHandler, defineTask, type TaskContext } from '@bullpen/contract'
import { z } from 'zod'
import { effect } from '../effect.ts'
import { simulate } from '../simulate.ts'
import type { PlantedFault } from './planted-fault.fixture.ts'

const invoice = defineTask({ name: 'invoice.send', queue: 'invoices', input: z.object({ number: z.int() }) })
const input = { number: 7 }

const resources = () => {
  const sent = new Set<number>()
  return {
    invoices: {
      isSent: async (number: number) => sent.has(number),
      send: effect(async (number: number) => void sent.add(number)),
      sendUnlessSent: effect(async (number: number) => void sent.add(number), { deduplicatedBy: 'arguments' }),
    },
  }
}

type Context = TaskContext<typeof invoice, ReturnType<typeof resources>>

const faulty = defineHandler(invoice, import.meta.url, async ({ input: { number }, resources }: Context) => {
  if (!(await resources.invoices.isSent(number))) await resources.invoices.send(number)
})

const idempotent = defineHandler(invoice, import.meta.url, async ({ input: { number }, resources }: Context) => {
  await resources.invoices.sendUnlessSent(number)
})

export const checkThenActFault: PlantedFault = {
  name: 'a check that a second attempt overtakes',
  faulty: () => simulate(faulty, input, { resources }),
  idempotent: (options) => simulate(idempotent, input, { resources, ...options }),
  faults: [{ kind: 'repeated', effect: 'invoices.send(7)', foundBy: ['lock_lost'] }],
}
