// Handles receipt.send.
import { defineHandler, type TaskContext } from '@bullpen/contract'
import { receiptSend } from '@bullpen/tasks'
import type { WorkerResources } from '../resources/index.ts'

export default defineHandler(
  receiptSend,
  import.meta.url,
  ({ input, once, resources, signal }: TaskContext<typeof receiptSend, WorkerResources>) =>
    once('deliver', async (key) => {
      const status = await resources.receipts.deliver(input, key, signal)
      return { deliveredAt: new Date().toISOString(), status }
    }),
)
