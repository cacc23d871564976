// The resources of the example handlers, which are opened before the first task and closed after the last.
import { hostname } from 'node:os'
import { type FileAccess, openFileAccess } from './file-access.ts'
import { openReceiptGateway, type ReceiptGateway } from './receipt-gateway.ts'

export { RESOURCE_SETTINGS } from './settings.ts'
export type { FileAccess, ReceiptGateway }

export interface WorkerResources {
  readonly files: FileAccess
  readonly receipts: ReceiptGateway
  /** The worker that runs the handler: its host and process id, such as `web-1:4711`. */
  readonly worker: { readonly name: string }
}

export interface ResourceSettings {
  /**
   * The absolute directories from BULLPEN_WORKER_FILES_ROOTS. Files elsewhere are rejected. Without roots, all files are
   * rejected.
   */
  readonly filesRoots: readonly string[]
  /** The http or https URL from BULLPEN_WORKER_RECEIPT_ENDPOINT. If it is undefined, receipts are rejected. */
  readonly receiptEndpoint: string | undefined
}

/** Returns an opener for each of {@link WorkerResources}. `pid` is the process id of the worker, which is this process by default. */
export function workerResources({ filesRoots, receiptEndpoint }: ResourceSettings, pid = process.pid) {
  return {
    files: { open: () => openFileAccess({ roots: filesRoots }) },
    receipts: { open: () => openReceiptGateway({ endpoint: receiptEndpoint }) },
    worker: { open: async () => ({ name: `${hostname()}:${pid}` }) },
  } as const satisfies { [Name in keyof WorkerResources]: { open: () => Promise<WorkerResources[Name]> } }
}
