// The handlers of the example catalogue. A task without a handler does not compile.
import type { Handlers } from '@bullpen/contract'
import type { catalogue } from '@bullpen/tasks'
import type { WorkerResources } from '../resources/index.ts'
import filesDigest from './files-digest.ts'
import filesSortByPath from './files-sort-by-path.ts'
import filesWalk from './files-walk.ts'
import mathFactorial from './math-factorial.ts'
import mathPrimes from './math-primes.ts'
import receiptSend from './receipt-send.ts'

export const handlers = {
  'math.factorial': mathFactorial,
  'math.primes': mathPrimes,
  'receipt.send': receiptSend,
  'files.walk': filesWalk,
  'files.digest': filesDigest,
  'files.sort-by-path': filesSortByPath,
} satisfies Handlers<typeof catalogue, WorkerResources>
