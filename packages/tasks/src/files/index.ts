// Building blocks for programs that hash whole trees: the walk, bounded parallelism, and the list that md5sum prints.
export { forEachBounded } from './bounded.ts'
export { type FileDigest, md5Lines } from './md5-list.ts'
export { escapeBytes, pathText } from './path-text.ts'
export { joinPath, type Listing, listFiles } from './walk.ts'
