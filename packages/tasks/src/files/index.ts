// Building blocks for programs that hash whole trees: the walk, and the list that md5sum prints.
export { type FileDigest, md5Lines, sortByPath } from './md5-list.ts'
export { escapeBytes, pathText } from './path-text.ts'
export { joinPath, walkFiles } from './walk.ts'
