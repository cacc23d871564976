// The resources of a drill's child processes. The worker's last scrape concerns only the worker itself.

export default { lastScrape: { open: () => ({}) } }
