// The handlers of the example catalogue. A task without a handler does not compile.
import type { Handlers } from '@bullpen/contract'
import type { catalogue } from '@bullpen/tasks'
import type { WorkerResources } from '../resources/index.ts'
import filesDigest from './files-digest.ts'
import filesDigestTree from './files-digest-tree.ts'
import mathFactorial from './math-factorial.ts'
import receiptSend from './receipt-send.ts'

export const handlers = {
  'math.factorial': mathFactorial,
  'files.digest': filesDigest,
  'files.digest-tree': filesDigestTree,
  'receipt.send': receiptSend,
} satisfies Handlers<typeof catalogue, WorkerResources>
