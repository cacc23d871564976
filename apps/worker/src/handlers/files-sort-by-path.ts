// Handles files.sort-by-path.
import { defineReduceHandler } from '@bullpen/contract'
import { filesSortByPath } from '@bullpen/tasks'
import { joinPath, sortByPath } from '@bullpen/tasks/files'

export default defineReduceHandler(filesSortByPath, import.meta.url, (digests, { input }) => {
  const { length } = joinPath(input.directory, '')
  return {
    files: sortByPath(digests).map(({ path, md5 }) => ({ path: path.slice(length), md5 })),
    bytes: digests.reduce((sum, { bytes }) => sum + bytes, 0),
    workers: [...new Set(digests.map(({ worker }) => worker))].sort(),
    startedAgain: digests.filter(({ starts }) => starts > 1).length,
  }
})
