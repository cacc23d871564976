// The resources of the example handlers: opened before the first task, closed after the last.
import { type FileAccess, openFileAccess } from './file-access.ts'
import { openReceiptGateway, type ReceiptGateway } from './receipt-gateway.ts'

export { RESOURCE_SETTINGS } from './settings.ts'
export type { FileAccess, ReceiptGateway }

export interface WorkerResources {
  readonly files: FileAccess
  readonly receipts: ReceiptGateway
}

export interface ResourceSettings {
  /** BULLPEN_WORKER_FILES_ROOTS: absolute directories. Files elsewhere are refused; without roots, all files. */
  readonly filesRoots: readonly string[]
  /** BULLPEN_WORKER_RECEIPT_ENDPOINT: an http or https URL. Undefined: receipts are refused. */
  readonly receiptEndpoint: string | undefined
}

/** An opener for each of {@link WorkerResources}. */
export function workerResources({ filesRoots, receiptEndpoint }: ResourceSettings) {
  return {
    files: { open: () => openFileAccess({ roots: filesRoots }) },
    receipts: { open: () => openReceiptGateway({ endpoint: receiptEndpoint }) },
  } as const satisfies { [Name in keyof WorkerResources]: { open: () => Promise<WorkerResources[Name]> } }
}
