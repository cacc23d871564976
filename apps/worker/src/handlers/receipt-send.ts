// Handles receipt.send.
import { defineHandler, type TaskContext } from '@bullpen/contract'
import { receiptSend } from '@bullpen/tasks'
import type { WorkerResources } from '../resources/index.ts'

export default defineHandler(
  receiptSend,
  import.meta.url,
  async ({ id, input, resources, signal }: TaskContext<typeof receiptSend, WorkerResources>) => {
    const status = await resources.receipts.deliver(input, id, signal)
    return { deliveredAt: new Date().toISOString(), status }
  },
)
