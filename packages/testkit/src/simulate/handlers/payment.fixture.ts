// Charges a card. The faulty handler uses another idempotency key in each attempt that counts.
import { defineHandler, defineTask, type TaskContext } from '@bullpen/contract'
import { z } from 'zod'
import { effects } from '../effect.ts'
import { simulate } from '../simulate.ts'
import type { PlantedFault } from './planted-fault.fixture.ts'

const charge = defineTask({
  name: 'card.charge',
  queue: 'payments',
  input: z.object({ cents: z.int() }),
  output: z.object({ payment: z.string() }),
})
const input = { cents: 4_200 }

/** A payment provider that executes the request of each idempotency key once. */
class Provider {
  readonly #payments = new Map<string, string>()

  async charge(cents: number, options: { readonly idempotencyKey: string; readonly signal: AbortSignal }) {
    const payment = this.#payments.get(options.idempotencyKey) ?? `payment-${this.#payments.size + 1} of ${cents}`
    this.#payments.set(options.idempotencyKey, payment)
    return payment
  }
}

const resources = () => ({
  provider: effects(new Provider(), { charge: { deduplicatedBy: (_cents, { idempotencyKey }) => idempotencyKey } }),
})

type Context = TaskContext<typeof charge, ReturnType<typeof resources>>

const faulty = defineHandler(charge, import.meta.url, async (context: Context) => {
  const { id, attempt, input, resources, signal } = context
  return { payment: await resources.provider.charge(input.cents, { idempotencyKey: `${id}-${attempt}`, signal }) }
})

const idempotent = defineHandler(charge, import.meta.url, async ({ input, resources, signal, once }: Context) => ({
  payment: await once('charge', (idempotencyKey) => resources.provider.charge(input.cents, { idempotencyKey, signal })),
}))

export const paymentFault: PlantedFault = {
  name: 'a payment whose idempotency key changes',
  faulty: () => simulate(faulty, input, { resources }),
  idempotent: (options) => simulate(idempotent, input, { resources, ...options }),
  faults: [
    {
      kind: 'repeated',
      effect: 'provider.charge(4200, { idempotencyKey: <idempotency key> })',
      foundBy: ['timeout'],
    },
  ],
}
