// The example catalogue, shared by the example API and the example worker.
import { defineCatalogue } from '@bullpen/contract'
import { filesDigest } from './files-digest.ts'
import { filesDigestTree } from './files-digest-tree.ts'
import { mathFactorial } from './math-factorial.ts'
import { receiptSend } from './receipt-send.ts'

export { filesDigest, filesDigestTree, mathFactorial, receiptSend }

export const catalogue = defineCatalogue(mathFactorial, filesDigest, filesDigestTree, receiptSend)
