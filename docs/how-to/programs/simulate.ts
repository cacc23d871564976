import { defineHandler, defineTask, type TaskContext } from '@bullpen/contract'
import { effects, simulate } from '@bullpen/testkit'
import { z } from 'zod'

const order = defineTask({
  name: 'order.complete',
  queue: 'orders',
  input: z.object({ email: z.email(), cents: z.int() }),
})

/** Stands in for a payment provider and a mail server, which recognise repeated requests by their idempotency keys. */
class Shop {
  async charge(_cents: number, _key: string): Promise<string> {
    return 'payment-1'
  }
  async mail(_to: string, _text: string, _key?: string): Promise<void> {}
}

type Context = TaskContext<typeof order, { readonly shop: Shop }>

const faulty = defineHandler(order, import.meta.url, async ({ input, once, resources: { shop } }: Context) => {
  const payment = await once('charge', (key) => shop.charge(input.cents, key))
  await shop.mail(input.email, `Thank you for ${payment}.`)
})

const corrected = defineHandler(order, import.meta.url, async ({ input, once, resources: { shop } }: Context) => {
  const payment = await once('charge', (key) => shop.charge(input.cents, key))
  await once('mail', async (key) => {
    await shop.mail(input.email, `Thank you for ${payment}.`, key)
    return null
  })
})

const resources = () => ({
  shop: effects(new Shop(), {
    charge: { deduplicatedBy: (_cents, key) => key },
    mail: { deduplicatedBy: (_to, _text, key) => key },
  }),
})

for (const handler of [faulty, corrected]) {
  const result = await simulate(handler, { email: 'ann@example.com', cents: 4_200 }, { resources })
  console.log(`${result.summary}\n`)
}
