// The example catalogue: what the API accepts and the worker handles in this repository.
import { defineCatalogue } from '@bullpen/contract'
import { filesDigest } from './files-digest.ts'
import { filesDigestTree } from './files-digest-tree.ts'
import { mathFactorial } from './math-factorial.ts'
import { receiptSend } from './receipt-send.ts'

export { filesDigest, filesDigestTree, mathFactorial, receiptSend }

export const catalogue = defineCatalogue(mathFactorial, filesDigest, filesDigestTree, receiptSend)
