// Lets a receipt follow a charge. The faulty handler adds the follow-up in a step of ctx.once, which a later attempt does not run again.
import { defineHandler, defineTask, type TaskContext } from '@bullpen/contract'
import { z } from 'zod'
import { simulate } from '../simulate.ts'
import type { PlantedFault } from './planted-fault.fixture.ts'

const receipt = defineTask({ name: 'receipt.send', queue: 'mails', input: z.object({ charge: z.string() }) })
const charge = defineTask({ name: 'order.charge', queue: 'orders', input: z.object({ order: z.int() }) })
const input = { order: 7 }

type Context = TaskContext<typeof charge>

const faulty = defineHandler(charge, import.meta.url, async ({ input, once, onSuccess }: Context) => {
  await once('charge', async (key) => {
    onSuccess(receipt, { charge: `${input.order} ${key}` })
    return null
  })
})

const idempotent = defineHandler(charge, import.meta.url, async ({ input, once, onSuccess }: Context) => {
  const id = await once('charge', async (key) => `${input.order} ${key}`)
  onSuccess(receipt, { charge: id })
})

export const followUpFault: PlantedFault = {
  name: 'a follow-up that a step of ctx.once adds',
  faulty: () => simulate(faulty, input),
  idempotent: (options) => simulate(idempotent, input, options),
  faults: [{ kind: 'missing', effect: 'follow-up "receipt.send"', foundBy: ['crash', 'timeout', 'lock_lost'] }],
}
