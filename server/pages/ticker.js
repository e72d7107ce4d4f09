// A worker that answers after the milliseconds it is sent. Timers of a page in a hidden tab may fire
// once a second only; a worker's do not care.

onmessage = ({ data }) => setTimeout(() => postMessage(null), data);
