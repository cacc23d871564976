// receipt.send: delivers one receipt to the endpoint that the worker's configuration names.
import { defineTask } from '@bullpen/contract'
import { z } from 'zod'

export const receiptSend = defineTask({
  name: 'receipt.send',
  queue: 'mail',
  kind: 'long',
  summary: "Delivers an order's receipt over HTTP.",
  input: z.object({
    orderId: z.string().min(1).max(64),
    to: z.email().max(254),
    // The total is a decimal string because binary fractions cannot represent most amounts of money.
    total: z.string().regex(/^\d{1,15}(\.\d{1,4})?$/, "expected a decimal number such as '19.90'"),
    currency: z.string().regex(/^[A-Z]{3}$/, "expected an ISO 4217 code such as 'EUR'"),
  }),
  output: z.object({ deliveredAt: z.iso.datetime(), status: z.int().min(200).max(299) }),
  timeout: '30s',
  retry: { maxAttempts: 5, backoff: { initialDelay: '1s', maxDelay: '30s' } },
})
