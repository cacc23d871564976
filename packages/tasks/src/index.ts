// The example catalogue, shared by the example API and the example worker.
import { defineCatalogue } from '@bullpen/contract'
import { filesDigest } from './files-digest.ts'
import { filesSortByPath } from './files-sort-by-path.ts'
import { filesWalk } from './files-walk.ts'
import { mathFactorial } from './math-factorial.ts'
import { mathPrimes } from './math-primes.ts'
import { md5AllBounded, md5AllParallel, md5AllSerial } from './md5-all.ts'
import { receiptSend } from './receipt-send.ts'

export {
  filesDigest,
  filesSortByPath,
  filesWalk,
  mathFactorial,
  mathPrimes,
  md5AllBounded,
  md5AllParallel,
  md5AllSerial,
  receiptSend,
}

export const catalogue = defineCatalogue(
  mathFactorial,
  mathPrimes,
  filesWalk,
  filesDigest,
  filesSortByPath,
  md5AllSerial,
  md5AllParallel,
  md5AllBounded,
  receiptSend,
)
