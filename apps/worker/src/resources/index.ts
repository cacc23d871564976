// What the example handlers use besides their input: opened before the first fetch, closed after the drain.
import { type FileAccess, openFileAccess } from './file-access.ts'
import { openReceiptGateway, type ReceiptGateway } from './receipt-gateway.ts'

export { RESOURCE_SETTINGS } from './settings.ts'
export type { FileAccess, ReceiptGateway }

export interface WorkerResources {
  readonly files: FileAccess
  readonly receipts: ReceiptGateway
}

export interface ResourceSettings {
  /** BULLPEN_WORKER_FILES_ROOTS: absolute directories; files elsewhere are refused. None: all are. */
  readonly filesRoots: readonly string[]
  /** BULLPEN_WORKER_RECEIPT_ENDPOINT: an http or https URL; undefined: receipts are refused. */
  readonly receiptEndpoint: string | undefined
}

/** One way to open each of {@link WorkerResources}. */
export function workerResources({ filesRoots, receiptEndpoint }: ResourceSettings) {
  return {
    files: { open: () => openFileAccess({ roots: filesRoots }) },
    receipts: { open: () => openReceiptGateway({ endpoint: receiptEndpoint }) },
  } as const satisfies { [Name in keyof WorkerResources]: { open: () => Promise<WorkerResources[Name]> } }
}
