// The resources of the example handlers, which are opened before the first task and closed after the last.
import { type FileAccess, openFileAccess } from './file-access.ts'
import { openReceiptGateway, type ReceiptGateway } from './receipt-gateway.ts'

export { RESOURCE_SETTINGS } from './settings.ts'
export type { FileAccess, ReceiptGateway }

export interface WorkerResources {
  readonly files: FileAccess
  readonly receipts: ReceiptGateway
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

/** Returns an opener for each of {@link WorkerResources}. */
export function workerResources({ filesRoots, receiptEndpoint }: ResourceSettings) {
  return {
    files: { open: () => openFileAccess({ roots: filesRoots }) },
    receipts: { open: () => openReceiptGateway({ endpoint: receiptEndpoint }) },
  } as const satisfies { [Name in keyof WorkerResources]: { open: () => Promise<WorkerResources[Name]> } }
}
